cluster	ramp	2	2	1	4e9	100	propagation=0	io=0
graph	g	m	degree=1	color=red
op	g	1	forward	2	5	pair=4
op	g	2	forward	3	6	pair=3
op	g	4	backward	2	5
op	g	3	backward	3	6
dep	g	1	2	0
dep	g	2	3	0
dep	g	3	4	0
job	a	g	0	10	inf
layout	L	g	1
place	L	1	0
place	L	4	0
place	L	2	0
place	L	3	0
alloc	a	g	L	0	0-0-0
job	b	g	100	10	inf
alloc	b	g	L	120	0-0-0
job	c	g	130	1	inf
job	d	g	150	1	inf
alloc	d	g	L	150	0-1-0
job	e	g	160	1	inf
alloc	c	g	L	170	0-1-0
