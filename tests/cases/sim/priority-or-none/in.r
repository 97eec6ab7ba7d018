cluster	ramp	2	2	1	4e9	100	propagation=0	io=0
graph	g	m
op	g	p	task	1	1
op	g	q	task	2	1
op	g	r	task	3	1
job	a	g	0	1	inf
layout	L	g	1
place	L	p	0
place	L	q	0	priority=-1
place	L	r	0	priority=2.5
alloc	a	g	L	0	0-0-0
