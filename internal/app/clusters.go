package app

import (
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/drover-project/drover/internal/backend/ganeti"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
)

// clusterSettings are how one further cluster for servers is reached.
type clusterSettings struct {
	Name         string          `toml:"name"`
	URL          string          `toml:"url"`
	User         string          `toml:"user"`
	PasswordFile string          `toml:"password-file"`
	CA           string          `toml:"ca"`
	Every        daemon.Duration `toml:"poll"`
}

// readClusters reads the table of further clusters for servers: [[cluster]] with
// name, url, user, password-file, and perhaps ca and poll. Without a file there
// are none.
func readClusters(path string, log *slog.Logger) (map[string]*ganeti.Cluster, error) {
	out := map[string]*ganeti.Cluster{}
	if path == "" {
		return out, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read the clusters for servers: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	var table struct {
		Cluster []clusterSettings `toml:"cluster"`
	}
	decoder := toml.NewDecoder(file)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&table); err != nil {
		if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			row, column := unknown.Errors[0].Position()
			return nil, fault.New(fault.Invalid, "%s:%d:%d: a cluster has name, url, user, password-file, ca and poll", path, row, column).At("server-clusters")
		}
		return nil, fault.New(fault.Invalid, "%s: %w", path, err).At("server-clusters")
	}
	for _, c := range table.Cluster {
		if c.Name == "" || out[c.Name] != nil {
			return nil, fault.New(fault.Invalid, "%s: each cluster has a name of its own; %q is none", path, c.Name).At("server-clusters")
		}
		if out[c.Name], err = c.open(log); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *clusterSettings) open(log *slog.Logger) (*ganeti.Cluster, error) {
	password, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read the password for cluster %s: %w", c.Name, err)
	}
	var ca []byte
	if c.CA != "" {
		if ca, err = os.ReadFile(c.CA); err != nil {
			return nil, fault.New(fault.Environment, "cannot read the certificate of cluster %s: %w", c.Name, err)
		}
	}
	return ganeti.Open(ganeti.Config{URL: c.URL, User: c.User, Password: strings.TrimSpace(string(password)), CA: ca, Every: c.Every.Duration, Log: log})
}
