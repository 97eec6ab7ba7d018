cluster	ramp	2	2	1	4e9	100	propagation=0	io=0
graph	g	m
op	g	1	task	1e308	1
job	a	g	0	1000	inf
layout	L	g	1
place	L	1	0
alloc	a	g	L	0	0-0-0
