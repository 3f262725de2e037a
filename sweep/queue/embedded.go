package queue

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// ServerOptions configure a server in this process.
type ServerOptions struct {
	// Listen is HOST:PORT, or HOST for any free port; empty means this machine only.
	Listen string
	// Store is the folder that it keeps its streams in. It is removed at the end.
	Store string
}

// address is where to listen. Port 0 is any free one.
func (o ServerOptions) address() (host string, port int, err error) {
	const here = "127.0.0.1"
	host, text := here, o.Listen
	if _, number := strconv.Atoi(text); text == "" {
		return here, 0, nil
	} else if number != nil {
		if net.ParseIP(text) != nil || !strings.Contains(text, ":") {
			return text, 0, nil
		}
		host, text, err = net.SplitHostPort(text)
	}
	n, number := strconv.ParseUint(text, 10, 16)
	if err != nil || number != nil {
		return "", 0, fmt.Errorf("queue: the embedded server cannot listen on %q; give HOST:PORT, such as 0.0.0.0:4222, HOST for any free port, or PORT for this machine only", o.Listen)
	}
	return host, int(n), nil
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
