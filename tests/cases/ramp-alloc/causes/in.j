graph	g	m	degree=1	color=red
op	g	1	forward	2	5	pair=4
op	g	2	forward	3	6	pair=3
op	g	4	backward	2	5
op	g	3	backward	3	6
dep	g	1	2	0
dep	g	2	3	0
dep	g	3	4	0
graph	f	m
op	f	1	forward	1	21
graph	w	m
op	w	1a	forward	1	1	of=1	part=1/3
op	w	1b	forward	1	1	of=1	part=2/3
op	w	1c	forward	1	1	of=1	part=3/3
job	a	g	0	1	inf
job	b	f	0	1	inf
job	c	w	0	1	inf
job	d	g	0	1	9.99
job	e	g	0	1	10
job	h	g	1	1	inf
job	i	f,w,g	11	1	inf
