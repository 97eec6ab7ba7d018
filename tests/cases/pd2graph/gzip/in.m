node1 -- Conv2d(3, 64) -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=4
node2 -- Linear -- forward_compute_time=1, backward_compute_time=2, activation_size=16, parameter_size=2
	node1 -- node2
