cluster	ramp	2	2	1	4e9	100	propagation=0	io=0
graph	g	m
op	g	long	task	10	1
op	g	x	task	2	1
op	g	short	task	1	1
dep	g	x	short	0
job	a	g	5	1	inf
layout	L	g	2
place	L	long	0
place	L	short	0
place	L	x	1
alloc	a	g	L	7	1-1-0,0-0-0
