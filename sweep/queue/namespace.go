package queue

import "errors"

// NamespaceOf returns the namespace that a queue's URL names.
func NamespaceOf(url string) (string, error) {
	_, namespace, err := parseURL(url)
	return namespace, err
}

// Ready returns nil while there is a connection to a server, and why there is none otherwise.
func (c *Connection) Ready() error {
	if !c.nc.IsConnected() {
		return errors.New("queue: there is no connection to the server")
	}
	return nil
}
