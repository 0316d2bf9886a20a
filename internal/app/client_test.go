package app_test

import (
	"crypto/tls"
	"net/http"
)

// trusting returns a client that takes the self-signed certificate of a test
// cluster.
func trusting() *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	return &http.Client{Transport: transport}
}
