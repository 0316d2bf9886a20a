// Package screen keeps lines in place on a terminal: a page that is drawn anew when there is news of it, when a key is
// pressed, and when the terminal gets another size. What is asked, what a key means and which lines are seen is the page's;
// the terminal is the library's.
//
// Invariants:
//   - One question at a time is under way.
//   - What comes from a controller reaches the terminal as text: nothing in it is obeyed.
//   - The terminal is afterwards as it was before, whatever ended the page.
package screen

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/drover-project/drover/internal/cli/listing"
)

// Size is what a terminal has room for.
type Size struct{ Width, Height int }

// Action is what follows from a key.
type Action int

// The actions.
const (
	Stay  Action = iota // the page is drawn anew, and that is all
	Again               // it is asked anew at once
	Leave               // the page ends
)

// Page is what is shown.
type Page interface {
	// Next is the next question, and how long it may rest.
	Next() (ask func(context.Context) (any, error), rest time.Duration)
	// Take takes in what came of a question. An error that it returns ends the page.
	Take(answer any, err error) error
	// Key takes in a key, by a name like q, up or pgdown.
	Key(name string, size Size) Action
	// Lines are what is seen. What does not fit is cut off.
	Lines(size Size) []string
}

// Terminal is where a page is shown.
type Terminal struct {
	In  io.Reader
	Out io.Writer
	// Environ are the variables that tell of the terminal.
	Environ []string
	// Size is that of a terminal that does not tell its size by itself.
	Size Size
}

// Show shows a page until it is left, its context ends, or it fails.
func Show(ctx context.Context, t Terminal, page Page) error {
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithEnvironment(t.Environ),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics()}
	if t.Size != (Size{}) {
		options = append(options, tea.WithWindowSize(t.Size.Width, t.Size.Height))
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	end, err := tea.NewProgram(&model{ctx: asking, page: page}, options...).Run()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if m, ok := end.(*model); ok && m.failed != nil {
		return m.failed
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return context.Canceled
	}
	return err
}

// model is a page in the library's words.
type model struct {
	ctx    context.Context //nolint:containedctx // questions are asked by the library, which has none
	page   Page
	size   Size
	asked  int  // how often it was asked; a rest that is over is that of the last time or means nothing
	busy   bool // a question is under way
	again  bool // the next one is not to rest
	failed error
}

// answered is what came of a question.
type answered struct {
	value any
	err   error
}

// rested says that the rest before a question is over.
type rested struct{ before int }

func (m *model) Init() tea.Cmd { return m.ask() }

// ask asks at once.
func (m *model) ask() tea.Cmd {
	question, _ := m.page.Next()
	m.busy, m.again = true, false
	m.asked++
	return func() tea.Msg {
		value, err := question(m.ctx)
		return answered{value, err}
	}
}

// rest asks when the page has rested.
func (m *model) rest() tea.Cmd {
	_, rest := m.page.Next()
	if rest <= 0 || m.again {
		return m.ask()
	}
	before := m.asked
	return tea.Tick(rest, func(time.Time) tea.Msg { return rested{before} })
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.size = Size{msg.Width, msg.Height}
	case answered:
		m.busy = false
		if m.failed = m.page.Take(msg.value, msg.err); m.failed != nil {
			return m, tea.Quit
		}
		return m, m.rest()
	case rested:
		if msg.before == m.asked && !m.busy {
			return m, m.ask()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case tea.PasteMsg:
		for _, r := range msg.Content {
			if cmd := m.key(string(r)); cmd != nil {
				return m, cmd
			}
		}
	}
	return m, nil
}

// key has the page take in a key. An interruption ends every page.
func (m *model) key(name string) tea.Cmd {
	if name == "ctrl+c" {
		m.failed = context.Canceled
		return tea.Quit
	}
	switch m.page.Key(name, m.size) {
	case Leave:
		return tea.Quit
	case Again:
		if m.busy {
			m.again = true
			return nil
		}
		return m.ask()
	default:
		return nil
	}
}

func (m *model) View() tea.View {
	var v tea.View
	v.AltScreen = true
	if m.size.Height > 0 {
		lines := m.page.Lines(m.size)
		v.Content = clean(strings.Join(lines[:min(len(lines), m.size.Height)], "\n"))
	}
	return v
}

// clean escapes what a terminal would obey, but for colours and line breaks.
func clean(text string) string {
	var b strings.Builder
	_, _ = listing.Terminal{To: &b}.Write([]byte(text)) // a builder takes everything
	return b.String()
}
