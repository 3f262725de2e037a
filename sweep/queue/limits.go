package queue

// What messages may weigh, in bytes. A server allows 1 MiB unless told otherwise.
const (
	maxPointMessage = 256 << 10
	maxPartMessage  = 768 << 10
	// partBytes is how much finished points are gathered before they are sent.
	partBytes = 512 << 10
	// maxErrorText bounds the message of a failed row.
	maxErrorText = 16 << 10
)
