cluster	ramp	2	2	1	4e9	100	propagation=0	io=0
graph	g	m
op	g	1	task	1	1
op	g	2	task	1	1
op	g	3	task	1	1
dep	g	1	2	1
dep	g	2	3	1
dep	g	3	2	1
job	a	g	0	1	inf
layout	L	g	1
place	L	1	0
place	L	2	0
place	L	3	0
alloc	a	g	L	0	0-0-0
