package health

// clients tells of members that do not let everybody in.
func clients(f *Facts) []Line {
	var lines []Line
	for _, m := range answering(f) {
		for _, c := range m.Crowds {
			l := Line{State: Note, Part: "clients", What: m.Name + " turns clients away (" + c.Surface + ")", Why: c.Text, Since: c.Since,
				Do: "its log names an address: find the client that opens connections and does not close them, or raise LimitNOFILE of the service"}
			if c.Starved {
				l.State, l.What = Problem, m.Name+" has no file or memory left for further clients ("+c.Surface+")"
				l.Do = "raise LimitNOFILE of the service, then start it again; what it has open is in /proc/PID/fd"
			}
			lines = append(lines, l)
		}
	}
	return lines
}
