package queue

import (
	"net"
	"os"
)

// ServerOptions configure a server in this process.
type ServerOptions struct {
	// Listen is HOST:PORT, or HOST for any free port; empty means this machine only.
	Listen string
	// Store is the folder that it keeps its streams in. It is removed at the end.
	Store string
}

// reachableFrom is the address of a server that listens on one of this machine, for this machine and for others. One that listens on
// all addresses has none of its own: others find it by the name of the machine, if that is known to them.
func reachableFrom(listening string) (here, elsewhere string) {
	host, port, err := net.SplitHostPort(listening)
	if err != nil {
		return listening, listening
	}
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsUnspecified() {
		return listening, listening
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "NAME-OF-THIS-MACHINE"
	}
	return net.JoinHostPort("127.0.0.1", port), net.JoinHostPort(name, port)
}
