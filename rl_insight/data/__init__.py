"""What lies in the input folder, whose it is, and whether it is good."""
