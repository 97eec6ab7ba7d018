node1 -- Conv2d(3, 64) -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=4
node2 -- Conv2d(3, 64) -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=4
node1 -- Conv2d(3, 64) -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=4
