package identity

import (
	"maps"

	"github.com/drover-project/drover/internal/intake"
)

// The bodies of requests: all keys that Keystone's schemas know. What is not done
// is refused.
var (
	done = intake.Key{Done: true}

	ours     = intake.Key{So: []string{`"default"`}, Why: "there is one domain, default"}
	noOption = intake.Key{Why: "there are no options"}

	// someone is a user, a project or a role, of a domain.
	someone = intake.Object{"id": done, "name": done, "domain": {Done: true, In: intake.Object{"id": done, "name": done}}}

	bodyOfLogin = intake.Object{"auth": {Done: true, In: intake.Object{
		"identity": {Done: true, In: intake.Object{
			"methods":  done,
			"password": {Done: true, In: intake.Object{"user": {Done: true, In: with(someone, "password", done)}}},
			"token":    {Done: true, In: intake.Object{"id": done}},
			"application_credential": {Done: true,
				In: with(with(someone, "secret", done), "user", intake.Key{Done: true, In: with(someone, "password", intake.Key{Why: "the credential has a secret"})})},
			"totp":   {Why: "the methods are password, application_credential and token"},
			"mapped": {Why: "the methods are password, application_credential and token"},
		}},
		"scope": done,
	}}}
	bodyOfProject = intake.Object{"project": {Done: true, In: intake.Object{
		"name": done, "description": done, "enabled": done, "domain_id": ours, "options": noOption,
		"parent_id": {So: []string{`"default"`}, Why: "projects are in no other"},
		"is_domain": {Why: "there is one domain, default"},
		"tags":      {Why: "projects have no tags"},
	}}}
	bodyOfUser = intake.Object{"user": {Done: true, In: intake.Object{
		"name": done, "password": done, "email": done, "description": done, "default_project_id": done, "enabled": done, "domain_id": ours, "options": noOption,
		"federated": {Why: "accounts are kept here"},
	}}}
	// Who changes something may say which it is.
	bodyOfProjectEdit = intake.Object{"project": {Done: true, In: with(bodyOfProject["project"].In, "id", done)}}
	bodyOfUserEdit    = intake.Object{"user": {Done: true, In: with(bodyOfUser["user"].In, "id", done)}}
	bodyOfPassword    = intake.Object{"user": {Done: true, In: intake.Object{"original_password": done, "password": done}}}
	bodyOfCredential  = intake.Object{"application_credential": {Done: true, In: intake.Object{
		"name": done, "description": done, "secret": done, "expires_at": done,
		"roles":        {Done: true, In: with(someone, "domain_id", ours)},
		"unrestricted": {Why: "an application credential makes no others"},
		"access_rules": {Why: "a credential has all that its roles allow"},
	}}}
)

// with is an object with one key more.
func with(o intake.Object, name string, k intake.Key) intake.Object {
	out := intake.Object{name: k}
	maps.Copy(out, o)
	return out
}
