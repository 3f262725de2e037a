package queue

import (
	"os"
	"testing"
)

func TestReachableFrom(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Skip("this machine has no name")
	}
	for listening, want := range map[string][2]string{
		"127.0.0.1:4222":   {"127.0.0.1:4222", "127.0.0.1:4222"},
		"192.0.2.1:4222":   {"192.0.2.1:4222", "192.0.2.1:4222"},
		"0.0.0.0:4222":     {"127.0.0.1:4222", name + ":4222"},
		"[::]:4222":        {"127.0.0.1:4222", name + ":4222"},
		"[2001:db8::1]:99": {"[2001:db8::1]:99", "[2001:db8::1]:99"},
	} {
		if here, elsewhere := reachableFrom(listening); here != want[0] || elsewhere != want[1] {
			t.Errorf("%s: %s and %s, want %v", listening, here, elsewhere, want)
		}
	}
}

func TestListenAddress(t *testing.T) {
	for listen, want := range map[string]struct {
		host string
		port int
	}{
		"":             {"127.0.0.1", 0},
		"4222":         {"127.0.0.1", 4222},
		"0.0.0.0":      {"0.0.0.0", 0},
		"0.0.0.0:4222": {"0.0.0.0", 4222},
		"::1":          {"::1", 0},
		"[::1]:99":     {"::1", 99},
		"node-7":       {"node-7", 0},
		"node-7:0":     {"node-7", 0},
		"70000":        {},
		"-1":           {},
		"node-7:nats":  {},
		"node-7:":      {},
		"a:b:c":        {},
	} {
		host, port, err := ServerOptions{Listen: listen}.address()
		if host != want.host || port != want.port || (err == nil) != (want.host != "") {
			t.Errorf("%q: %s and %d, error %v", listen, host, port, err)
		}
	}
}
