package health

import "time"

// Facts are what is known of a cluster at one moment, gathered by the controller that was asked.
type Facts struct {
	Now time.Time
	// Asked is the name of the controller that gathered them.
	Asked string
	// Members are the controllers, in the order of their names.
	Members []Member
	// Remembered says why the controllers are those that were known before: the store does not tell. Empty if it does.
	Remembered string
	// Cluster is what the controller that leads tells of the rest; nil if none that leads could be asked.
	Cluster *Cluster
}

// Role is what a controller does.
type Role string

// The roles.
const (
	Leads     Role = "leader"
	StandsBy  Role = "standby"
	IsUnknown Role = "unknown" // it does not answer
)

// Member is a controller, by what it tells of itself.
type Member struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"` // where the others reach it; empty for one that is alone
	Role    Role   `json:"role"`
	// Doubt says why one that leads is not certain of it; empty if it is.
	Doubt string `json:"doubt,omitempty"`
	// Silent says why nothing is known of it but its name; empty if it answers.
	Silent string `json:"silent,omitempty"`
	// Older: it answers, with a program that tells no more than its role.
	Older   bool   `json:"older,omitempty"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	// Clock is the time that it has, and Ahead how far that is before the clock of who asked.
	Clock time.Time     `json:"clock,omitzero"`
	Ahead time.Duration `json:"-"`
	// ClockAhead is how far that is before the clock of the database, by which leases expire; nil where that is not known.
	ClockAhead *time.Duration `json:"clock_ahead,omitempty"`
	Started    time.Time      `json:"started,omitzero"`
	Stopping   bool           `json:"stopping,omitempty"`
	// Unfit says why it cannot lead; empty if it can.
	Unfit string `json:"unfit,omitempty"`
	// Drained says by whom it is drained, and why; empty if it is not.
	Drained string `json:"drained,omitempty"`
	// Store is what is wrong with its store, nil for nothing.
	Store *Trouble `json:"store,omitempty"`
	// Revision is the newest that it shows. Behind is how many the store was ahead of one that stands by, which had a second to come up with it.
	Revision int64 `json:"revision"`
	Behind   int64 `json:"behind,omitempty"`
	// Accounts is what is wrong with the accounts of RAPI, nil for nothing.
	Accounts     *Trouble      `json:"accounts,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	// Disk is that of the data directory; nil if the system does not tell.
	Disk *Disk `json:"disk,omitempty"`
	// Backups are those that its machine has of the store; nil where nobody said where.
	Backups *Backups `json:"backups,omitempty"`
	// Crowds are the surfaces that do not let everybody in.
	Crowds []Crowd `json:"crowds,omitempty"`
}

// Crowd is a time in which clients are not let in at a surface of a controller.
type Crowd struct {
	Surface string `json:"surface"` // its name for people
	Trouble
	// Starved: the system has no file or memory for further clients. Else there are as many as there may be.
	Starved bool `json:"starved,omitempty"`
}

// Trouble is what is wrong, and since when if that is known.
type Trouble struct {
	Text  string    `json:"text"`
	Since time.Time `json:"since,omitzero"`
}

// Certificate is one that a controller shows.
type Certificate struct {
	// Of says to whom: "RAPI" or "other controllers".
	Of   string `json:"of"`
	File string `json:"file"`
	// Own: it was made by Drover, which renews it.
	Own   bool      `json:"own,omitempty"`
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
}

// Disk is a file system, in bytes.
type Disk struct {
	Path string `json:"path"`
	Free uint64 `json:"free"` // what the controller may still use
	Size uint64 `json:"size"`
	// Store is how much an embedded store has of it; 0 for another.
	Store uint64 `json:"store,omitempty"`
}

// Backups are what a directory has of them.
type Backups struct {
	Dir string `json:"dir"`
	// Missing: there is no such directory. Trouble says why it cannot be looked at; empty if it can.
	Missing bool   `json:"missing,omitempty"`
	Trouble string `json:"trouble,omitempty"`
	Count   int    `json:"count"`
	// Newest is when the newest was made, zero for none, and Bytes how large it is.
	Newest time.Time `json:"newest,omitzero"`
	Bytes  uint64    `json:"bytes,omitempty"`
}

// Cluster is what the controller that leads tells.
type Cluster struct {
	Name string `json:"name"`
	// Epoch is that of its term, and Since when that began.
	Epoch  int64     `json:"epoch"`
	Since  time.Time `json:"since"`
	Format int       `json:"format"`
	Queue  Queue     `json:"queue"`
	// Rules are those that hold jobs.
	Rules []Rule `json:"rules,omitempty"`
	Nodes Nodes  `json:"nodes"`
	Watch Watch  `json:"watch"`
	// Unreadable are objects of the inventory that are set aside.
	Unreadable []string `json:"unreadable,omitempty"`
	// Servers are the clusters that servers are on.
	Servers []ServerCluster `json:"servers,omitempty"`
	Tags    Tags            `json:"tags"`
	// Events is how telling of events goes; nil where no broker is told.
	Events *Events `json:"events,omitempty"`
}

// Queue is how the queue of jobs is.
type Queue struct {
	// Trouble says why it does not work; empty if it does.
	Trouble string `json:"trouble,omitempty"`
	// Unreadable are parts of it that are set aside.
	Unreadable []string `json:"unreadable,omitempty"`
	Drained    bool     `json:"drained,omitempty"`
	// Drain says by whom, when and why; empty if it is not, or nobody knows.
	Drain string `json:"drain,omitempty"`
	// PausedUntil is until when watchers do nothing, zero if they work.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	Slots       int       `json:"slots"`
	Running     Jobs      `json:"running"`
	// Waiting are those that wait, by what for: "filter", "depend", "node", "bucket", "slot", "lock".
	Waiting map[string]Jobs `json:"waiting,omitempty"`
	// Left are jobs of this term that could not take back what they had done; Oldest is the last of them, Since when.
	Left Jobs `json:"left,omitzero"`
	// Ended and Failed count the jobs that ended within Recent, and those of them that failed.
	Ended  int `json:"ended"`
	Failed int `json:"failed"`
}

// Recent is for how long a job that ended counts as one that ended just now.
const Recent = time.Hour

// Jobs are how many are somewhere, and which of them is there for the longest time, since when.
type Jobs struct {
	Count  int       `json:"count"`
	Oldest int64     `json:"oldest,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// Rule is a filter rule that holds jobs.
type Rule struct {
	UUID string `json:"uuid"`
	Name string `json:"name,omitempty"`
	Jobs `json:"jobs"`
}

// Watch is what the watcher has to do with instances that are to run and do not.
type Watch struct {
	// GaveUp are those that did not stay up, and are left alone.
	GaveUp []string `json:"gave_up,omitempty"`
	// Trying are those that are being started again, each with the job.
	Trying []string `json:"trying,omitempty"`
}

// Nodes are those of the cluster.
type Nodes struct {
	All     int      `json:"all"`
	Offline []string `json:"offline,omitempty"`
	Drained []string `json:"drained,omitempty"`
	// Away are nodes in service whose agents are not connected.
	Away []AwayNode `json:"away,omitempty"`
	// Ahead are nodes that follow a controller of a later epoch, and refuse the orders of this one.
	Ahead      []string `json:"ahead,omitempty"`
	AheadEpoch int64    `json:"ahead_epoch,omitempty"`
}

// AwayNode is a node whose agent is not connected.
type AwayNode struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since,omitzero"`
}

// ServerCluster is a cluster that servers are on.
type ServerCluster struct {
	Name string `json:"name"` // empty for Drover's own
	// Away is since when it does not answer, and Why the reason; zero while it does.
	Away time.Time `json:"away,omitzero"`
	Why  string    `json:"why,omitempty"`
}

// Tags are those of servers that are not on their clusters yet as they are wanted, and may still come there.
type Tags struct {
	// Servers is how many have such tags, and Oldest the id of the one that waits for the longest time, since when.
	Servers int       `json:"servers"`
	Oldest  string    `json:"oldest,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Events is how telling the broker goes.
type Events struct {
	// Trouble is why the broker is not told at the moment, nil while it is.
	Trouble *Trouble `json:"trouble,omitempty"`
	// Behind is how many revisions of the store have not been looked at yet.
	Behind int64 `json:"behind"`
}
