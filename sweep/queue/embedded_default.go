//go:build !full

package queue

import "errors"

// CheckServer says why this build cannot start a server.
func CheckServer() error {
	return errors.New("this build of servegrid has no server of its own for --queue embedded; install the full one with: go install -tags full github.com/servegrid/servegrid/cmd/servegrid@latest, or start nats-server -js and give --queue nats://127.0.0.1:4222")
}

// StartServer is in the full build only.
func StartServer(ServerOptions) (*Server, error) { return nil, CheckServer() }

// Server is a queue's server in this process.
type Server struct{}

// URL is where processes of this machine find it, URLElsewhere where others do.
func (*Server) URL(string) string          { return "" }
func (*Server) URLElsewhere(string) string { return "" }

// Token is what others need to get in.
func (*Server) Token() string { return "" }

// Close stops the server and removes what it stored.
func (*Server) Close() error { return nil }
