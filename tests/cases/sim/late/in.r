cluster	ramp	2	2	1	4e9	100	propagation=0	io=0
graph	g	m
op	g	1	task	0.001	1
job	a	g	1e15	5	inf
layout	L	g	1
place	L	1	0
alloc	a	g	L	1e15	0-0-0
