#rampipe	1
graph	a	m
op	a	1	forward	1	1
#end
