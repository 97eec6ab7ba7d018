	node1 -- node2
