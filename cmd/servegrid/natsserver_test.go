package main

import (
	"flag"
	"net"
	"os"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"
)

// natsServer is the nats-server command, so that a test needs none on the machine.
func natsServer() {
	opts, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ExitOnError), os.Args[1:], server.PrintServerAndExit, func() {}, func() {})
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(opts)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
}

// scriptFreePort runs `freeport NAME` and puts a port that nobody listens on into that variable.
func scriptFreePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	ts.Check(err)
	ts.Check(listener.Close())
	ts.Setenv(args[0], port)
}
