package upload

// Settled waits until no job of an image is under way.
func (s *Service) Settled(id string) {
	for {
		s.mu.RLock()
		ended := s.jobs[id]
		s.mu.RUnlock()
		if ended == nil {
			return
		}
		<-ended
	}
}

// Ending has the job of an image before be about to end while something is done, and tells whether it is gone on with then.
func (s *Service) Ending(id string, do func()) (on bool) {
	ended := make(chan struct{})
	s.mu.Lock()
	s.jobs[id] = ended
	s.mu.Unlock()
	do()
	return !s.leave(id, ended)
}
