package openai

import (
	"encoding/base64"
	"slices"
	"strings"
)

// leastSecret is the length from which on the value of a header of the user's own counts as a secret, in bytes: shorter ones are
// words that messages may well have.
const leastSecret = 8

// hideSecrets returns what hides in a text the key, the user and password of URLs and the values of the user's own headers.
func hideSecrets(o *TargetOptions) *strings.Replacer {
	var secrets []string
	add := func(text string) { secrets = append(secrets, text) }
	if o.APIKey != "" {
		add(o.APIKey)
	}
	for _, u := range o.URLs {
		if password, _ := u.User.Password(); password != "" {
			add(password)
			add(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password)))
		} else if name := u.User.Username(); name != "" {
			add(name)
			add(base64.StdEncoding.EncodeToString([]byte(name + ":")))
		}
	}
	for _, values := range o.Header {
		for _, value := range values {
			if len(value) >= leastSecret {
				add(value)
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be part of another
	var pairs []string
	for _, secret := range slices.Compact(secrets) {
		pairs = append(pairs, secret, "***")
	}
	return strings.NewReplacer(pairs...)
}

// maxMessage bounds what is kept of a server's error message, in bytes.
const maxMessage = 300

// shortened is the beginning of a message, as text.
func shortened(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "\ufffd")
}
