package job

import "testing"

func TestForecasts(t *testing.T) {
	for _, c := range []struct {
		got  Forecast
		want Forecast
	}{
		{ForecastCancel(7, Queued, false), Forecast{true, "Job 7 would be cancelled"}},
		{ForecastCancel(7, Waiting, true), Forecast{true, "Job 7 would be cancelled"}},
		{ForecastCancel(7, Running, true), Forecast{true, "Job 7 is running: its opcode would be told to end"}},
		{ForecastCancel(7, Running, false), Forecast{false, "Job 7 is running: its present opcode would complete, the rest would be cancelled"}},
		{ForecastCancel(7, Success, true), Forecast{false, "Job 7 not found in queue"}},
		{ForecastPriority(7, Queued, -10), Forecast{true, "Priorities of pending opcodes for job 7 would be changed to -10"}},
		{ForecastPriority(7, Canceled, 0), Forecast{false, "Job 7 not found in queue"}},
		{ForecastArchive(7, Error, false), Forecast{true, "Job 7 would be archived"}},
		{ForecastArchive(7, Error, true), Forecast{false, "Job 7 is in the archive already"}},
		{ForecastArchive(7, Canceling, false), Forecast{false, "Job 7 is canceling; only jobs that have ended can be archived"}},
	} {
		if c.got != c.want {
			t.Errorf("got %+v, want %+v", c.got, c.want)
		}
	}
}
