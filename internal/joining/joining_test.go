package joining_test

import (
	"crypto/rand"
	"crypto/x509"

	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/authority/authoritytest"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
)

// house is a door with nodes.
type house struct {
	*authoritytest.House
	*testing.T
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{authoritytest.New(t), t}
}

func (h *house) joined(name string) *x509.Certificate {
	h.T.Helper()
	_, c := h.Joined(name)
	return c
}

func (h *house) admitted(what string, err error) {
	h.T.Helper()
	if err != nil {
		h.T.Errorf("%s: %v", what, err)
	}
}

func TestATokenCountsOnce(t *testing.T) {
	h := newHouse(t)
	secret := h.Secret("node1")
	_, mine := h.Request()
	_, other := h.Request()
	_, err := h.Join(t.Context(), "node1", "guessed", mine)
	h.Denied("another secret", err, "is not that of node node1")
	_, err = h.Join(t.Context(), "node2", secret, mine)
	h.Denied("a node that is not there", err, "not in the cluster")
	first := h.Parsed(h.Join(t.Context(), "node1", secret, mine))
	_, err = h.Join(t.Context(), "node1", secret, other)
	h.Denied("another key", err, "was used by another agent")
	h.admitted("who joined", h.Admit("node1", first))
	// Whose answer was lost asks again, with its key.
	again := h.Parsed(h.Join(t.Context(), "node1", secret, mine))
	h.admitted("who joined again", h.Admit("node1", again))
	h.Denied("the certificate whose answer was lost", h.Admit("node1", first), "was revoked")
	h.Later(joining.TokenTime + time.Second)
	_, err = h.Join(t.Context(), "node1", secret, mine)
	h.Denied("an old token", err, "ended at")
}

func TestTwoCertificatesCount(t *testing.T) {
	h := newHouse(t)
	_, r := h.Request()
	first := h.joined("node1")
	second := h.Parsed(h.Renew(t.Context(), "node1", first, r))
	h.admitted("the one before: the answer may have been lost", h.Admit("node1", first))
	h.admitted("the newest", h.Admit("node1", second))
	third := h.Parsed(h.Renew(t.Context(), "node1", second, r))
	h.Denied("the one before that", h.Admit("node1", first), "was revoked")
	h.admitted("the third", h.Admit("node1", third))
	h.joined("node1")
	h.Denied("who joined before another did", h.Admit("node1", third), "was revoked")
	_, err := h.Renew(t.Context(), "node1", third, r)
	h.Denied("and its renewal", err, "was revoked")
	last := h.joined("node1")
	another := h.Named("node1").Clone()
	another.UUID = "another"
	h.Put("node1", another)
	h.Denied("another node of the same name", h.Admit("node1", last), "not in the cluster")
	h.Put("node1", nil)
	h.Denied("a node that was removed", h.Admit("node1", last), "not in the cluster")
}

// TestAnAnswerMayBeLostTwice: whoever asked with a certificate and had no answer asks with it again, and may have no answer again. That
// one counts on, and the one of which nobody heard does not.
func TestAnAnswerMayBeLostTwice(t *testing.T) {
	h := newHouse(t)
	_, r := h.Request()
	mine := h.joined("node1")
	lost := h.Parsed(h.Renew(t.Context(), "node1", mine, r))
	h.Parsed(h.Renew(t.Context(), "node1", mine, r))
	h.admitted("the one that was asked with twice", h.Admit("node1", mine))
	h.Denied("the one of which nobody heard", h.Admit("node1", lost), "was revoked")
	h.parsedAndAdmitted(mine, r)
}

func TestAStoreOfBeforeKnowsItsAgents(t *testing.T) {
	h := newHouse(t)
	_, r := h.Request()
	first := h.joined("node1")
	before := h.Named("node1")
	h.Later(joining.RenewAfter)
	second := h.Parsed(h.Renew(t.Context(), "node1", first, r))
	h.Later(joining.RenewAfter)
	third := h.Parsed(h.Renew(t.Context(), "node1", second, r))
	h.Put("node1", before)
	h.admitted("who has renewed since", h.Admit("node1", third))
	h.Later(time.Second)
	h.parsedAndAdmitted(third, r)
	h.Denied("the one of before", h.Admit("node1", first), "was revoked")
	// A node that was removed and added again is another, whatever its state is.
	another := h.Named("node1").Clone()
	another.UUID, another.Agent = "another", before.Agent
	h.Put("node1", another)
	h.Denied("another node", h.Admit("node1", third), "not in the cluster")
}

// TestATokenOutlivesARenewal: whoever was given one to take the place of an agent may do so, though that one renews its
// certificate meanwhile; and a token that was used stays that of its key.
func TestATokenOutlivesARenewal(t *testing.T) {
	h := newHouse(t)
	_, r := h.Request()
	first := h.joined("node1")
	secret := h.Secret("node1")
	second := h.Parsed(h.Renew(t.Context(), "node1", first, r))
	h.admitted("who has renewed", h.Admit("node1", second))
	_, mine := h.Request()
	taken := h.Parsed(h.Join(t.Context(), "node1", secret, mine))
	h.admitted("who takes its place", h.Admit("node1", taken))
	h.Denied("whose place was taken", h.Admit("node1", second), "was revoked")
	h.Parsed(h.Renew(t.Context(), "node1", taken, mine))
	_, err := h.Join(t.Context(), "node1", secret, r)
	h.Denied("another key, with a token that was used", err, "was used by another agent")
}

// TestANodeWithoutANumberLetsNobodyIn: of one that keeps no number nobody can tell which certificate is its agent's, so none counts by its date
// alone; who has the token joins.
func TestANodeWithoutANumberLetsNobodyIn(t *testing.T) {
	h := newHouse(t)
	_, r := h.Request()
	was := h.joined("node1")
	n := h.Named("node1").Clone()
	n.Agent = nil
	h.Put("node1", n)
	for _, what := range []string{"a node that has no agent elsewhere", "one that waits for its agent"} {
		h.Denied(what, h.Admit("node1", was), "was revoked")
		_, err := h.Renew(t.Context(), "node1", was, r)
		h.Denied(what+", and a renewal", err, "was revoked")
		h.Secret("node1")
	}
}

// TestARevokedCertificateIsNoneOfLater: that one ends after the newest of its node does not bring it back. It was signed by a controller whose clock
// was ahead of the one that leads now, or before a clock was put right.
func TestARevokedCertificateIsNoneOfLater(t *testing.T) {
	h := newHouse(t)
	_, r := h.Request()
	revoked := h.joined("node1")
	h.Later(-time.Minute)
	mine := h.joined("node1")
	h.Denied("the agent of before", h.Admit("node1", revoked), "was revoked")
	h.admitted("who joined in its place", h.Admit("node1", mine))
	h.Later(-time.Minute)
	next := h.Parsed(h.Renew(t.Context(), "node1", mine, r))
	h.Denied("the agent of before, behind a renewal", h.Admit("node1", revoked), "was revoked")
	h.admitted("the one that was renewed", h.Admit("node1", mine))
	last := h.Parsed(h.Renew(t.Context(), "node1", next, r))
	h.Denied("one that was renewed twice", h.Admit("node1", mine), "was revoked")
	h.admitted("the newest", h.Admit("node1", last))
}

// parsedAndAdmitted renews a certificate of node1, and shows the next.
func (h *house) parsedAndAdmitted(c *x509.Certificate, request []byte) {
	h.T.Helper()
	h.admitted("the next", h.Admit("node1", h.Parsed(h.Renew(h.Context(), "node1", c, request))))
}

func TestEndedCertificatesRenewOnce(t *testing.T) {
	h := newHouse(t)
	_, r := h.Request()
	first := h.joined("node1")
	h.Later(30 * 24 * time.Hour)
	h.Denied("a certificate that has ended", h.Admit("node1", first), "ended at")
	second := h.Parsed(h.Renew(t.Context(), "node1", first, r))
	h.admitted("the next one", h.Admit("node1", second))
	h.Parsed(h.Renew(t.Context(), "node1", second, r))
	_, err := h.Renew(t.Context(), "node1", first, r)
	h.Denied("the first one again", err, "was revoked")
}

func TestTokensAreReadBack(t *testing.T) {
	want := joining.Token{Node: "node1", Secret: rand.Text(), Addresses: []string{"192.0.2.1:5082", "[2001:db8::1]:5082"}, Authority: strings.Repeat("a", 64)}
	got, err := joining.ParseToken(" " + want.String() + "\n")
	if err != nil || got.Node != want.Node || got.Secret != want.Secret || got.Authority != want.Authority || strings.Join(got.Addresses, " ") != strings.Join(want.Addresses, " ") {
		t.Errorf("%+v, %v", got, err)
	}
	text := want.String()
	for _, bad := range []string{"", "x", text[:len(text)-5], text + "x.", "drover-token-1-" + "e30", strings.Replace(text, "drover-token-1-", "drover-token-2-", 1), "drover-token-1-" + strings.Repeat("A", 9000)} {
		_, err := joining.ParseToken(bad)
		if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), want.Secret) || len(bad) > 40 && strings.Contains(err.Error(), bad[20:]) {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(joining.Token{Node: "n", Secret: "s", Addresses: []string{"a:1"}, Authority: "x"}.String())
	f.Add("drover-token-1-e30")
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := joining.ParseToken(text)
		if err != nil {
			return
		}
		if again, err := joining.ParseToken(tok.String()); err != nil || again.String() != tok.String() {
			t.Errorf("%q is read as %+v, and that as %+v: %v", text, tok, again, err)
		}
	})
}
