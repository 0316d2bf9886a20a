package joining

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Token is all that an agent needs to join.
type Token struct {
	// Node is the name of the node that the agent joins as.
	Node string `json:"node"`
	// Secret is what shows that the agent may.
	Secret string `json:"secret"`
	// Addresses are those of the controllers, as HOST:PORT.
	Addresses []string `json:"addresses"`
	// Authority is the SHA-256 of the certificate of who signs theirs, as hexadecimal digits.
	Authority string `json:"authority"`
}

// tokenMark begins each token, so that people and programs that look for secrets know one.
const tokenMark = "drover-token-1-"

// maxToken is the size of a token.
const maxToken = 8 << 10

// String is the token as it is handed over: one word.
func (t Token) String() string {
	text, _ := json.Marshal(t) //nolint:errchkjson,gosec // its fields are texts, and the secret is what it is for
	return tokenMark + base64.RawURLEncoding.EncodeToString(text)
}

// ParseToken reads a token. Its secret is in no error.
func ParseToken(text string) (t Token, err error) {
	refuse := func(why string) (Token, error) {
		return Token{}, fault.New(fault.Invalid, "this is no token: %s", why).At("token").WithHint("drover node token NAME prints one; it is one word that begins with %s", tokenMark)
	}
	text = strings.TrimSpace(text)
	inner, marked := strings.CutPrefix(text, tokenMark)
	if !marked {
		return refuse("it does not begin as tokens do")
	}
	if len(text) > maxToken {
		return refuse("it is too long")
	}
	raw, err := base64.RawURLEncoding.DecodeString(inner)
	if err != nil {
		return refuse("a part of it is missing, or was changed")
	}
	if err := intake.Read(raw, &t); err != nil {
		return refuse("a part of it is missing, or was changed")
	}
	if t.Node == "" || t.Secret == "" || t.Authority == "" || len(t.Addresses) == 0 {
		return refuse("something is missing in it")
	}
	for _, a := range t.Addresses {
		if host, port, ok := cutLast(a); !ok || host == "" || port == "" {
			return refuse("one of its addresses cannot be read")
		}
	}
	return t, nil
}

// cutLast cuts an address before its port.
func cutLast(address string) (host, port string, ok bool) {
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return "", "", false
	}
	return address[:i], address[i+1:], true
}
