package agentwire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Handler serves an agent to controllers. It asks nobody who they are: the link does.
type Handler struct {
	calls executions
	end   context.CancelCauseFunc
}

// NewHandler serves a node. Calls that may not be done twice are noted in a directory, which outlives the handler; without one they are known as long as
// the handler is.
func NewHandler(n Served, dir string) (*Handler, error) {
	j, err := openJournal(dir)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(context.Background())
	return &Handler{calls: executions{node: n, journal: j, self: newID(), life: ctx, byID: map[string]*execution{}}, end: end}, nil
}

// Close ends the calls that go on, as the end of a controller would, and waits for them: tasks go on by themselves.
func (h *Handler) Close() {
	h.calls.close(func() { h.end(fault.New(fault.Unavailable, "the agent of node %s is shut down", h.calls.node.Node())) })
}

// statuses are the statuses of HTTP for calls that are not begun; others are 500.
var statuses = map[fault.Code]int{
	fault.Invalid: http.StatusBadRequest, fault.NotFound: http.StatusNotFound, fault.TooLarge: http.StatusRequestEntityTooLarge, fault.Denied: http.StatusForbidden,
	fault.Unsupported: http.StatusMethodNotAllowed, fault.Busy: http.StatusTooManyRequests, fault.Conflict: http.StatusConflict, fault.Unavailable: http.StatusServiceUnavailable,
}

// noSuchCall begins the error about a call that an agent does not know. Agents of before have said it, so it stays.
const noSuchCall = "there is no call "

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	w.Header().Set(headerAgent, h.calls.self)
	if err := h.serve(w, hr); err != nil {
		status := statuses[fault.CodeOf(err)]
		if status == 0 {
			status = http.StatusInternalServerError
		}
		newStream(w).refuse(status, failed(err))
	}
}

// serve answers a request; its error is why it was not begun.
func (h *Handler) serve(w http.ResponseWriter, hr *http.Request) error {
	if hr.Method != http.MethodPost {
		return fault.New(fault.Unsupported, "a call is a POST")
	}
	name, _ := strings.CutPrefix(hr.URL.Path, pathCalls)
	if hr.URL.Path == pathScreen {
		return h.screen(w, hr)
	}
	c, known := calls[name]
	if !known && hr.URL.Path != pathCancel {
		return fault.New(fault.NotFound, noSuchCall+"%.100q", hr.URL.Path).WithHint("the controller may be newer than the agent")
	}
	r, err := h.request(w, hr)
	if err != nil {
		return err
	}
	if !known {
		return h.canceled(w, r)
	}
	do, err := c.serve(r.Args)
	if err != nil {
		return err
	}
	if !c.lasts {
		newStream(w).write(frame{End: carry(hr.Context(), h.calls.node, func(string) {}, do)})
		return nil
	}
	if !validID(r.ID) {
		return fault.New(fault.Invalid, "the call has no name that could be one").At("id")
	}
	x, err := h.calls.begin(r, name, c.once, do)
	if err != nil {
		return err
	}
	follow(hr.Context(), newStream(w), x, max(r.From, 0))
	return nil
}

// request reads a request.
func (h *Handler) request(w http.ResponseWriter, hr *http.Request) (*request, error) {
	var r request
	text, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxRequest))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fault.New(fault.TooLarge, "a call has more than %d bytes", maxRequest)
	}
	if err == nil {
		err = intake.Read(text, &r)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the call cannot be read: %w", err)
	}
	return &r, h.meant(&r)
}

// meant refuses a call for another node.
func (h *Handler) meant(r *request) error {
	if node := h.calls.node.Node(); r.Node != node {
		return fault.New(fault.Denied, "the call is for node %.300q, and this is %s", r.Node, node)
	}
	return nil
}

// canceled ends a call.
func (h *Handler) canceled(w http.ResponseWriter, r *request) error {
	if r.Cancel == nil {
		return fault.New(fault.Invalid, "it is not said why the call is to end").At("cancel")
	}
	if !h.calls.cancelCall(r.ID, r.Cancel.fault()) {
		return fault.New(fault.NotFound, "there is no call %.100q", r.ID).WithHint("it may be on its way: say it again")
	}
	newStream(w).write(frame{End: &end{}})
	return nil
}

// follow writes what comes of a call, until it is over or the one who asked is gone.
func follow(ctx context.Context, s *stream, x *execution, from int) {
	for {
		frames, more := x.since(from)
		for _, f := range frames {
			if !s.write(f) || f.End != nil {
				return
			}
			if from += f.Lost; f.Line != nil {
				from++
			}
		}
		s.flush()
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// stream writes frames.
type stream struct {
	w       http.ResponseWriter
	to      *json.Encoder
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", contentType)
	to := json.NewEncoder(w)
	to.SetEscapeHTML(false)
	return &stream{w: w, to: to, control: http.NewResponseController(w)}
}

// refuse writes why a call is not begun. Who does not read it is gone.
func (s *stream) refuse(status int, why *failure) {
	s.w.WriteHeader(status)
	_ = s.to.Encode(why) //nolint:errchkjson // its fields are texts
}

// write is false when nobody reads.
func (s *stream) write(f frame) bool { return s.to.Encode(f) == nil }

func (s *stream) flush() { _ = s.control.Flush() }
