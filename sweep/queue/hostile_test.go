package queue

import (
	"strings"
	"testing"
)

// No part of a password that somebody puts into a URL comes back in an error.
func TestURLSecrets(t *testing.T) {
	for _, url := range []string{
		"u:s3cret@h:4222", "nats:u:s3cret@h:4222", "nats://u:s3cret@h:4222/x", "nats://u:s3/cret@h:4222/x", "nats://u:s3@cret@h/x",
		"nats://h/x#s3cret", "nats://h/x?s3cret", "nats://u:s3?cret@h/x", "nats://h/x#a@s3cret", "nats://,h/u:s3cret@x",
		"NATS://u:s3cret@h", "https://u:s3cret@h", "nats://h1,u:s3cret@h2/x",
	} {
		_, _, err := parseURL(url)
		if err == nil {
			t.Errorf("%s is taken", url)
			continue
		}
		if text := err.Error(); strings.Contains(text, "s3") || strings.Contains(text, "cret@") || strings.Contains(text, "u:") {
			t.Errorf("%s: the error tells a secret: %s", url, text)
		}
	}
}

// A port that cannot be is refused before anything connects, and schemes are told whatever their case.
func TestURLPorts(t *testing.T) {
	for _, url := range []string{"nats://h:99999", "nats://h:0/x", "nats://h:-1", "nats://h:port", "nats://h:", "nats://h1:4222,h2:65536/x", "nats://[::1]:70000"} {
		if _, _, err := parseURL(url); err == nil || !strings.Contains(err.Error(), "port") {
			t.Errorf("%s: error %v", url, err)
		}
	}
	for _, url := range []string{"NATS://h:4222/x", "nats://h/x", "nats://h:65535/x", "TLS://[::1]:4222/x"} {
		if servers, _, err := parseURL(url); err != nil || servers != strings.ToLower(servers) {
			t.Errorf("%s: %s, error %v", url, servers, err)
		}
	}
}
