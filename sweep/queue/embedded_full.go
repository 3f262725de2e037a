//go:build full

package queue

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/servegrid/servegrid/results"
)

// Server is a queue's server in this process.
type Server struct {
	server *server.Server
	token  string
	store  string
}

// CheckServer returns nil: this build can start a server.
func CheckServer() error { return nil }

// StartServer starts a nats-server with JetStream. Only who knows its token gets in.
func StartServer(opt ServerOptions) (*Server, error) {
	host, port, err := opt.address()
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if err := os.MkdirAll(opt.Store, 0o700); err != nil {
		return nil, fmt.Errorf("queue: the embedded server's folder %s cannot be made: %w", opt.Store, results.FileCause(err))
	}
	s := &Server{token: randomToken(), store: opt.Store}
	s.server, err = server.NewServer(&server.Options{
		ServerName: "servegrid", Host: host, Port: port, Authorization: s.token,
		JetStream: true, StoreDir: opt.Store, NoSigs: true, NoLog: true, DontListen: false,
	})
	if err != nil {
		return nil, fmt.Errorf("queue: the embedded server: %w", err)
	}
	s.server.Start()
	if !s.server.ReadyForConnections(serverStart) {
		s.server.Shutdown()
		return nil, fmt.Errorf("queue: the embedded server does not start on %s; is the port taken?", net.JoinHostPort(host, strconv.Itoa(max(port, 0))))
	}
	if !s.server.JetStreamEnabled() {
		s.server.Shutdown()
		return nil, fmt.Errorf("queue: the embedded server cannot use its folder %s", opt.Store)
	}
	return s, nil
}

const serverStart = 10 * time.Second

// URL is where processes of this machine find it.
func (s *Server) URL(namespace string) string {
	here, _ := reachableFrom(s.server.Addr().String())
	return "nats://" + here + "/" + namespace
}

// URLElsewhere is where other machines find it, if they know this one by its name; the same as URL when it listens on one address.
func (s *Server) URLElsewhere(namespace string) string {
	_, elsewhere := reachableFrom(s.server.Addr().String())
	return "nats://" + elsewhere + "/" + namespace
}

// Token is what others need to get in.
func (s *Server) Token() string { return s.token }

// Close stops the server and removes what it stored.
func (s *Server) Close() error {
	s.server.Shutdown()
	s.server.WaitForShutdown()
	if err := os.RemoveAll(s.store); err != nil {
		return errors.Join(fmt.Errorf("queue: the embedded server's folder %s cannot be removed", s.store), err)
	}
	return nil
}
