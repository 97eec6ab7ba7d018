graph	h	m
op	h	1	forward	1	1
job	k	h,g	100	1	inf
