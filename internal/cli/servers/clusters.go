package servers

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
)

// clusterHealth is how a cluster of servers is, as the controller has met it.
type clusterHealth struct {
	Name     string    `json:"name"`
	Servers  int       `json:"servers"`
	Working  int       `json:"working"`
	AtOnce   int       `json:"at_once"`
	Answered time.Time `json:"answered"`
	Away     time.Time `json:"away"`
	Why      string    `json:"why"`
}

const clustersHelp = `List the clusters that servers are on: how many servers each has, how many of them
are being worked on of as many as there is room for, and whether it answers. One
that does not keeps its own servers waiting, and no others: what users want stays
written down, and is done when it answers again.`

// serverClusters lists the clusters that servers are on.
func serverClusters(sh *shell.Shell) *cobra.Command {
	return sh.Group("cluster", "Clusters that servers are on", &cobra.Command{
		Use: "list", Short: "List the clusters that servers are on, and whether they answer", Long: clustersHelp, Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text json.RawMessage
			if err := sh.Ask(cmd.Context(), "QueryServerClusters", &text); err != nil {
				return err
			}
			var clusters []clusterHealth
			if err := json.Unmarshal(text, &clusters); err != nil {
				return err
			}
			return sh.Show(text, func() error {
				t := &shell.Table{}
				t.Add("Cluster", "Servers", "Working", "State")
				for _, c := range clusters {
					t.Add(cmp.Or(c.Name, "own"), strconv.Itoa(c.Servers), strconv.Itoa(c.Working)+" of "+strconv.Itoa(c.AtOnce), c.state(sh))
				}
				return sh.Printf("%s", t)
			})
		},
	})
}

// state says whether a cluster answers.
func (c *clusterHealth) state(sh *shell.Shell) string {
	switch {
	case c.Name == "":
		return "is this one"
	case !c.Away.IsZero():
		return "does not answer, since " + sh.Since(job.At(c.Away)) + ": " + c.Why
	case c.Answered.IsZero():
		return "not asked yet"
	}
	return "answers, last " + sh.Since(job.At(c.Answered))
}
