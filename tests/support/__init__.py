"""What several kinds of tests share: an application of their own on the run's broker, and readers of its topics."""
