graph	g	m	degree=1	color=red
op	g	1	forward	2	5	pair=4
op	g	2	forward	3	6	pair=3
op	g	4	backward	2	5
op	g	3	backward	3	6
dep	g	1	2	0
dep	g	2	3	0
dep	g	3	4	0
job	a	g	0	10	inf
