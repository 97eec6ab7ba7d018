#rampipe	1
graph	b	m
op	b	1	forward	1	1
job	j	b	0	1	inf
#end
