graph	g	m
op	g	1	forward	0.004	12	activation=5	param=7	pair=4
op	g	2	forward	0.00001	30	activation=7	param=23	pair=3
op	g	4	backward	0.006	12	activation=5	param=7	pair=1
op	g	3	backward	0.002	30	activation=7	param=23	pair=2
dep	g	1	2	5
dep	g	2	3	7
dep	g	3	4	7
job	j	g	0	50	inf
