"""The worker: Faust as control plane, a lane per partition as data path."""
