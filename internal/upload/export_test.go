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
