package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Security is how a client has to come to the brokers, with TLS and SASL; nil where everybody may.
type Security struct {
	CA        string `json:"ca"`
	Mechanism string `json:"mechanism"`
	User      string `json:"user"`
	Password  string `json:"password"`
}

// TLS trusts the authority of the brokers.
func (s *Security) TLS() (*tls.Config, error) {
	data, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(data)
	return &tls.Config{RootCAs: trusted}, nil
}

// One is one record of a topic.
type One struct {
	Partition int32
	Offset    int64
	Value     []byte
}

// A copier reads count records of "in" as a member of the group "copiers", sends one record to "out" in a transaction that it
// aborts, then all of them with the group's offsets in one that it commits. It returns what a member of the group "readers"
// that reads what is committed finds in "out".
type copier func(servers []string, security *Security, count int) ([]One, error)

var copiers = map[string]copier{"franz-go": franzCopy, "sarama": saramaCopy}

// copyOver is the command "copy CLIENT BOOTSTRAP SECURITY COUNT": it prints the values of the copy, one per line.
func copyOver(arguments []string) {
	var security *Security
	check(json.Unmarshal([]byte(arguments[2]), &security))
	count, err := strconv.Atoi(arguments[3])
	check(err)
	copied, err := copiers[arguments[0]](strings.Split(arguments[1], ","), security, count)
	check(err)
	for _, one := range copied {
		fmt.Println(string(one.Value))
	}
}
