package identity

import (
	"cmp"
	"context"
	"time"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// Project owns servers.
type Project struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
}

// FindProject finds a project by id or name.
func (s *Service) FindProject(idOrName string) (Project, error) {
	return find(s, "project", s.projects, idOrName, func(p *Project) string { return p.Name })
}

// Project finds a project by id alone.
func (s *Service) Project(id string) (Project, error) { return byID(s, "project", s.projects, id) }

// Projects returns all projects, by name.
func (s *Service) Projects() []Project {
	return all(s, s.projects, func(*Project) bool { return true }, func(p Project) string { return p.Name })
}

// ProjectsOf returns the projects in which a user has a role, by name.
func (s *Service) ProjectsOf(u User) []Project {
	return all(s, s.projects, func(p *Project) bool { return p.Enabled && len(u.Roles[p.ID]) > 0 }, func(p Project) string { return p.Name })
}

// ProjectEdit says what a project is to be; what is nil stays as it is.
type ProjectEdit struct {
	Name, Description *string
	Enabled           *bool
}

// maxProjectName is how long the name of a project may be, in characters, as Keystone
// has it.
const maxProjectName = 64

// applyToProject makes a project what an edit says.
func (s *Service) applyToProject(p *Project, e ProjectEdit) error {
	if e.Name != nil && *e.Name != p.Name {
		if err := checkName(*e.Name); err != nil {
			return err
		}
		if utf8.RuneCountInString(*e.Name) > maxProjectName {
			return fault.New(fault.Invalid, "the name of a project may have %d characters at most", maxProjectName).At("name")
		}
		if _, err := s.FindProject(*e.Name); err == nil {
			return fault.New(fault.Exists, "there is a project %q already", *e.Name).At("name")
		}
		p.Name = *e.Name
	}
	if e.Description != nil && len(*e.Description) > maxText {
		return fault.New(fault.Invalid, "description may have %d bytes at most", maxText).At("description")
	}
	set(&p.Description, e.Description)
	set(&p.Enabled, e.Enabled)
	return nil
}

// AddProject makes a project, which is enabled unless the edit says otherwise.
// Exists if the name is taken.
func (s *Service) AddProject(ctx context.Context, e ProjectEdit) (Project, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return Project{}, err
	}
	defer done()
	p := &Project{ID: newID(s.cfg.NewUUID()), Enabled: true}
	if e.Name == nil {
		e.Name = new("")
	}
	if err := cmp.Or(checkName(*e.Name), s.applyToProject(p, e)); err != nil {
		return Project{}, err
	}
	return *p, put(ctx, s, KindProject, s.projects, p.ID, p, time.Time{})
}

// EditProject changes a project. The sessions of one that is disabled are good for
// nothing until it is enabled. Conflict if nobody could administer any more.
func (s *Service) EditProject(ctx context.Context, id string, e ProjectEdit) (Project, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return Project{}, err
	}
	defer done()
	p, err := s.FindProject(id)
	if err != nil {
		return Project{}, err
	}
	if err := s.applyToProject(&p, e); err != nil {
		return Project{}, err
	}
	if err := s.stayAdministered(func(_ map[string]*User, projects map[string]*Project) { projects[p.ID] = &p }); err != nil {
		return Project{}, err
	}
	return p, put(ctx, s, KindProject, s.projects, p.ID, &p, time.Time{})
}

// RemoveProject removes a project. Conflict if it owns servers, which nobody could
// reach any more, or if nobody could administer any more.
func (s *Service) RemoveProject(ctx context.Context, id string) error {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	p, err := s.FindProject(id)
	if err != nil {
		return err
	}
	s.owning.Lock()
	defer s.owning.Unlock()
	if n := s.cfg.Servers(p.ID); n > 0 {
		return fault.New(fault.Conflict, "project %s owns servers (%d), which nobody could reach any more", p.Name, n).
			WithHint("delete them first, as a user of the project")
	}
	if images := s.cfg.Images; images != nil && images(p.ID) > 0 {
		return fault.New(fault.Conflict, "project %s owns images (%d), which nobody could change any more", p.Name, images(p.ID)).
			WithHint("delete them first, as a user of the project: openstack image delete")
	}
	if err := s.stayAdministered(func(_ map[string]*User, projects map[string]*Project) { delete(projects, p.ID) }); err != nil {
		return err
	}
	return remove(ctx, s, KindProject, s.projects, p.ID)
}

// Keep keeps a project from being removed until release is called: what is made
// for it meanwhile counts. Denied if it is not there any more.
func (s *Service) Keep(id string) (release func(), err error) {
	s.owning.RLock()
	if _, err := s.FindProject(id); err != nil {
		s.owning.RUnlock()
		return nil, ErrDenied()
	}
	return s.owning.RUnlock, nil
}
