package rights

import (
	"slices"
	"strings"
	"testing"
)

// TestTheTable: what each account may do to what is the cluster's, its own, and somebody else's.
func TestTheTable(t *testing.T) {
	const all = "none known look change administer"
	names := map[string]Right{"none": None, "known": Known, "look": Look, "change": Change, "administer": Administer}
	for what, c := range map[string]struct {
		account Account
		// may are the rights that it has; of everything else the answer is that.
		may   string
		other Answer
	}{
		"nobody":              {Account{}, "none", Unknown},
		"an operator":         {Operator(), all, Refused},
		"read":                {Listed([]string{"read"}), "none known look", Refused},
		"write":               {Listed([]string{"write"}), "none known look change", Refused},
		"read and write":      {Listed([]string{"read", "write"}), "none known look change", Refused},
		"a line without":      {Listed(nil), "none known", Refused},
		"words of roles":      {Listed([]string{"admin", "member", "reader", "Write", "write ", ""}), "none known", Refused},
		"beside one":          {Listed([]string{"admin", "read"}), "none known look", Refused},
		"a reader":            {InProject("u", "p", []string{"reader"}), "none known look", Refused},
		"a member":            {InProject("u", "p", []string{"member"}), "none known look change", Refused},
		"an admin":            {InProject("u", "p", []string{"admin"}), all, Refused},
		"a reader and member": {InProject("u", "p", []string{"reader", "member"}), "none known look change", Refused},
		"without roles":       {InProject("u", "p", nil), "none known", Refused},
		"words of the file":   {InProject("u", "p", []string{"write", "read", "ADMIN"}), "none known", Refused},
		"in no project":       {InProject("u", "", nil), "none known", Refused},
	} {
		for name, right := range names {
			want := c.other
			if slices.Contains(strings.Fields(c.may), name) {
				want = Allowed
			}
			if got := c.account.May(right, Of{}); got != want {
				t.Errorf("%s, %s: %d, want %d", what, name, got, want)
			}
		}
		if got := c.account.May(0, Of{}); got == Allowed {
			t.Errorf("%s may do what names no right", what)
		}
	}
	for what, c := range map[string]struct {
		account Account
		of      Of
		want    Answer
	}{
		"a member in the project":         {InProject("u", "p", []string{"member"}), Of{Project: "p"}, Allowed},
		"a member in another":             {InProject("u", "p", []string{"member"}), Of{Project: "q"}, NotThere},
		"an admin in another":             {InProject("u", "p", []string{"admin"}), Of{Project: "q"}, NotThere},
		"an admin in none":                {InProject("u", "", nil), Of{Project: "q"}, NotThere},
		"a reader in the project":         {InProject("u", "p", []string{"reader"}), Of{Project: "p"}, Refused},
		"a reader in another":             {InProject("u", "p", []string{"reader"}), Of{Project: "q"}, NotThere},
		"an operator":                     {Operator(), Of{Project: "q"}, Allowed},
		"a line of the file":              {Listed([]string{"write"}), Of{Project: "q"}, Allowed},
		"a user's own":                    {InProject("u", "p", []string{"member"}), Of{User: "u"}, Allowed},
		"another user's":                  {InProject("u", "p", []string{"admin"}), Of{User: "v"}, NotThere},
		"a user's for an operator":        {Operator(), Of{User: "v"}, NotThere},
		"a user's own in another project": {InProject("u", "p", []string{"member"}), Of{User: "u", Project: "q"}, NotThere},
		"anything for nobody":             {Account{}, Of{Project: "p", User: "u"}, Unknown},
	} {
		if got := c.account.May(Change, c.of); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}
