package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// tlsFlags say how a server and this program prove to each other who they are.
type tlsFlags struct {
	authority, certificate, key string
	insecure                    bool
}

func (f *tlsFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.authority, "tls-ca", "", "file with the certificates, as PEM, that the server's certificate is checked with, instead of the system's")
	fs.StringVar(&f.certificate, "tls-cert", "", "file with the certificate, as PEM, that this program shows to a server that asks for one")
	fs.StringVar(&f.key, "tls-key", "", "file with the private key of --tls-cert, as PEM; the default is the file of --tls-cert")
	fs.BoolVar(&f.insecure, "tls-insecure", false, "do not check the server's certificate")
}

// config is nil where nothing is said, which is as the system does it. The error says everything that is wrong.
func (f *tlsFlags) config() (*tls.Config, error) {
	if *f == (tlsFlags{}) {
		return nil, nil
	}
	var errs []error
	config := &tls.Config{InsecureSkipVerify: f.insecure} // as asked for
	if f.authority != "" {
		pem, err := os.ReadFile(f.authority)
		if config.RootCAs = x509.NewCertPool(); err == nil && !config.RootCAs.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s has no certificate in PEM", f.authority)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--tls-ca: %w", err))
		}
	}
	switch key := f.key; {
	case f.certificate != "":
		if key == "" {
			key = f.certificate
		}
		pair, err := tls.LoadX509KeyPair(f.certificate, key)
		if err != nil {
			errs = append(errs, fmt.Errorf("--tls-cert: %s with the key in %s: %w", f.certificate, key, err))
		}
		config.Certificates = []tls.Certificate{pair}
	case key != "":
		errs = append(errs, errors.New("--tls-key is the key of a certificate; name that with --tls-cert"))
	}
	return config, errors.Join(errs...)
}
