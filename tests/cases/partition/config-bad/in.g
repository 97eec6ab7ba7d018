graph	g	m
op	g	1	forward	1	1
