"""What the Java originals of the cron dialects answer, and where ours differ and why."""
