"""What a test does to a cluster and reads from it: the methods of `Cluster`, and the faults that it orders."""
