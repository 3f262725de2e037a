package sweep

// syncDir does nothing: renames are durable without it, and folders cannot be synced.
func syncDir(string) error { return nil }
