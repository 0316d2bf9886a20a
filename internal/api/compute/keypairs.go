package compute

import (
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/keypair"
	"github.com/drover-project/drover/internal/quota"
)

// owner is whose key pairs a request is about: those of who asks. A token is for one user, also an administrator's.
func (r *request) owner(said string) (string, error) {
	if me := r.session.User.ID; said == "" || said == me {
		return me, nil
	}
	return "", refused{fault.New(fault.Denied, "Policy doesn't allow key pairs of another user to be seen or changed.").At("user_id"), http.StatusForbidden}
}

// keyBody is a key pair as lists show it.
func (r *request) keyBody(p keypair.Pair) object {
	out := object{"name": p.Name, "public_key": p.Public, "fingerprint": p.Fingerprint}
	if r.since(withKeyType) {
		out["type"] = "ssh"
	}
	return out
}

// listKeyPairs lists the key pairs of a user.
func listKeyPairs(r *request) (result, error) {
	q := r.URL.Query()
	owner, err := r.owner(q.Get("user_id"))
	if err != nil {
		return result{}, err
	}
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	all := r.api.cfg.Keys.Of(owner)
	if marker := q.Get("marker"); marker != "" {
		i := slices.IndexFunc(all, func(p keypair.Pair) bool { return p.Name == marker })
		if i < 0 {
			return result{}, noMarker(marker)
		}
		all = all[i+1:]
	}
	out, body := []any{}, object{}
	for _, p := range all[:min(limit, len(all))] {
		out = append(out, object{"keypair": r.keyBody(p)})
	}
	if 0 < limit && limit < len(all) {
		q.Set("marker", all[limit-1].Name)
		body["keypairs_links"] = []any{object{"rel": "next", "href": r.base() + r.URL.EscapedPath() + "?" + q.Encode()}}
	}
	body["keypairs"] = out
	return result{http.StatusOK, body}, nil
}

func showKeyPair(r *request) (result, error) {
	owner, err := r.owner(r.URL.Query().Get("user_id"))
	if err != nil {
		return result{}, err
	}
	p, err := r.api.cfg.Keys.Find(owner, r.path[0])
	if err != nil {
		return result{}, err
	}
	out := r.keyBody(p)
	out["id"] = p.Number()
	out["user_id"], out["created_at"], out["updated_at"], out["deleted"], out["deleted_at"] = p.User, p.Created.Format("2006-01-02T15:04:05.000000"), nil, false, nil
	return result{http.StatusOK, object{"keypair": out}}, nil
}

func addKeyPair(r *request) (result, error) {
	var body struct {
		Keypair *struct {
			Name   string  `json:"name"`
			Public *string `json:"public_key"`
			Type   string  `json:"type"`
			User   string  `json:"user_id"`
		}
	}
	if err := r.read(bodyOfKeyPair, &body); err != nil {
		return result{}, err
	}
	wish := body.Keypair
	switch {
	case wish == nil:
		return result{}, fault.New(fault.Invalid, "Invalid input: 'keypair' is a required property").At("keypair")
	case wish.Type != "" && wish.Type != "ssh" || wish.Type != "" && !r.since(withKeyType):
		return result{}, fault.New(fault.Invalid, "Invalid input for field/attribute type. Value: %s. Key pairs are of ssh", fault.Clip(wish.Type, 40)).At("type")
	case wish.User != "" && !r.since(withKeyUser):
		return result{}, fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('user_id' was unexpected)").At("user_id")
	case wish.Public == nil && r.since(withoutKeyMaking):
		return result{}, fault.New(fault.Invalid, "Invalid input for field/attribute keypair. 'public_key' is a required property").At("public_key").
			WithHint("key pairs are made here up to microversion 2.91")
	case strings.ContainsAny(wish.Name, "@.") && !r.since(withoutKeyMaking):
		return result{}, fault.New(fault.Invalid, "Keypair data is invalid: Keypair name contains unsafe characters").At("name").WithHint("@ and . are taken from microversion 2.92 on")
	case wish.Public != nil && *wish.Public == "":
		return result{}, fault.New(fault.Invalid, "Keypair data is invalid: failed to generate fingerprint: the public key is empty").At("public_key")
	}
	owner, err := r.owner(wish.User)
	if err != nil {
		return result{}, err
	}
	public := ""
	if wish.Public != nil {
		public = *wish.Public
	}
	p, private, err := r.api.cfg.Keys.Add(r.Context(), owner, wish.Name, public, int(r.quota()[quota.KeyPairs]))
	if err != nil {
		return result{}, ofKeys(err)
	}
	out := r.keyBody(p)
	out["user_id"] = p.User
	if private != "" {
		out["private_key"] = private
	}
	if r.since(withKeyType) {
		return result{http.StatusCreated, object{"keypair": out}}, nil
	}
	return result{http.StatusOK, object{"keypair": out}}, nil
}

// ofKeys says in Nova's way what has other statuses there.
func ofKeys(err error) error {
	switch fault.CodeOf(err) {
	case fault.Exists:
		return refused{err, http.StatusConflict}
	case fault.Denied:
		return refused{err, http.StatusForbidden}
	}
	return err
}

func deleteKeyPair(r *request) (result, error) {
	owner, err := r.owner(r.URL.Query().Get("user_id"))
	if err != nil {
		return result{}, err
	}
	if err := r.api.cfg.Keys.Remove(r.Context(), owner, r.path[0]); err != nil {
		return result{}, err
	}
	if r.since(withKeyType) {
		return result{status: http.StatusNoContent}, nil
	}
	return result{status: http.StatusAccepted}, nil
}
