package history

import (
	"context"
	"strconv"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/testkit/traces"
)

// failure is what happens in the midst of a history; in the end all is well
// again.
type failure struct {
	name string
	// slow says that it lasts as long as a lease does.
	slow bool
	// of happens, and returns how long it was before another controller answered,
	// if that matters.
	of func(g *group, leads *member, others []*member) time.Duration
}

var failures = []failure{
	{name: "the leader is killed", of: func(_ *group, leads *member, others []*member) time.Duration {
		leads.kill()
		took := others[0].answers()
		leads.start()
		return took
	}},
	{name: "the leader is stopped", of: func(_ *group, leads *member, others []*member) time.Duration {
		leads.stop()
		took := others[0].answers()
		leads.start()
		return took
	}},
	{name: "the leader is cut from the database", of: func(_ *group, leads *member, others []*member) time.Duration {
		leads.line.set(true)
		took := others[0].answers()
		leads.line.set(false)
		return took
	}},
	{name: "a standby is killed", of: func(_ *group, _ *member, others []*member) time.Duration {
		others[1].kill()
		others[0].answers()
		others[1].start()
		return 0
	}},
	{name: "the standbys pause for a while", of: func(g *group, leads *member, others []*member) time.Duration {
		for _, m := range others {
			m.signal(syscall.SIGSTOP)
		}
		took := leads.answers() // whatever they were granted
		rest(g, time.Second)
		for _, m := range others {
			m.signal(syscall.SIGCONT)
		}
		return took
	}},
	{name: "the leader pauses for a while", of: func(g *group, leads *member, _ []*member) time.Duration {
		leads.signal(syscall.SIGSTOP)
		rest(g, time.Second)
		leads.signal(syscall.SIGCONT)
		return 0
	}},
	{name: "the database crashes", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.Kill(syscall.SIGQUIT)
		g.db.Up()
		others[0].answers()
		return 0
	}},
	{name: "the lead is handed over", of: func(g *group, _ *member, others []*member) time.Duration {
		ctx, cancel := context.WithTimeout(g.Context(), patience)
		defer cancel()
		if err := others[0].ask(ctx, new(any), "MasterFailover"); err != nil {
			g.Logf("the lead was not handed over: %v", err) // under load it may have moved already
		}
		return 0
	}},
	{name: "the leader is killed and a standby is cut from the database", of: func(_ *group, leads *member, others []*member) time.Duration {
		others[1].line.set(true)
		leads.kill()
		took := others[0].answers()
		others[1].line.set(false)
		leads.start()
		return took
	}},
	{name: "the leader is cut from the others", of: func(g *group, leads *member, others []*member) time.Duration {
		leads.peer.set(true) // it leads on, for its own clients
		rest(g, time.Second)
		leads.answers()
		leads.peer.set(false)
		others[0].answers()
		return 0
	}},
	{name: "all are cut from one another, and the leader is killed", of: func(g *group, leads *member, others []*member) time.Duration {
		for _, m := range g.members {
			m.peer.set(true)
		}
		rest(g, time.Second)
		leads.kill()
		rest(g, time.Second) // one of the others leads, and answers its own clients
		for _, m := range g.members {
			m.peer.set(false)
		}
		took := others[0].answers()
		leads.start()
		return took
	}},
	{name: "the leader pauses until another leads", slow: true, of: func(g *group, leads *member, others []*member) time.Duration {
		defer traces.Hold(g, g.path("marks"))()
		rest(g, time.Second) // scripts work when it is paused, and for as long
		leads.signal(syscall.SIGSTOP)
		took := others[0].answers()
		rest(g, time.Second)
		leads.signal(syscall.SIGCONT)
		return took
	}},
	{name: "the leader's line to the database falls silent", slow: true, of: func(g *group, leads *member, others []*member) time.Duration {
		defer traces.Hold(g, g.path("marks"))()
		speak := leads.line.silence()
		defer speak()
		rest(g, time.Second) // it is sure for some time that it leads
		return others[0].answers()
	}},
	{name: "the leader's line to the database is silent for a while", of: func(g *group, leads *member, _ []*member) time.Duration {
		speak := leads.line.silence()
		defer speak()
		rest(g, time.Second)
		return 0
	}},
	{name: "two are killed", of: func(_ *group, leads *member, others []*member) time.Duration {
		leads.kill()
		others[1].kill()
		took := others[0].answers()
		leads.start()
		others[1].start()
		return took
	}},
	{name: "all are cut from the database", of: func(g *group, _ *member, others []*member) time.Duration {
		for _, m := range g.members {
			m.line.set(true)
		}
		rest(g, time.Second)
		for _, m := range g.members {
			m.line.set(false)
		}
		return others[0].answers()
	}},
	{name: "the database restarts", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.Kill(syscall.SIGINT)
		g.db.Up()
		return others[0].answers()
	}},
	{name: "a process of the database is killed", of: func(g *group, _ *member, others []*member) time.Duration {
		pid, err := strconv.Atoi(g.db.SQL("SELECT pid FROM pg_stat_activity WHERE application_name = 'drover' ORDER BY random() LIMIT 1"))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL) // all others start anew then
		}
		if err != nil {
			g.Fatal(err)
		}
		return others[0].answers()
	}},
	{name: "the database ends all connections", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.SQL("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'drover'")
		return others[0].answers()
	}},
	{name: "the database ends a connection", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.SQL("SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'drover' ORDER BY random() LIMIT 1) AS one")
		return others[0].answers()
	}},
	{name: "a stranger holds the row that all changes need", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.SQL("SELECT revision FROM drover.head FOR UPDATE; SELECT pg_sleep(1)")
		return others[0].answers()
	}},
	{name: "the database has no room", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.SQL(`CREATE OR REPLACE FUNCTION drover.no_room() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`,
			"CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON drover.lease EXECUTE FUNCTION drover.no_room()",
			"CREATE TRIGGER no_room BEFORE INSERT ON drover.feed EXECUTE FUNCTION drover.no_room()")
		rest(g, 2*time.Second)
		g.db.SQL("DROP TRIGGER no_room ON drover.lease", "DROP TRIGGER no_room ON drover.feed")
		return others[0].answers()
	}},
	{name: "the database takes no changes", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.SQL("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
		rest(g, 2*time.Second)
		g.db.SQL("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
		return others[0].answers()
	}},
}
