package server

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/server/internal/params"
)

// What became of a machine over time, for whoever owns it: trust, calibration and spending.

type trustHistoryIn struct {
	params.Machine
	params.Page
	State        string `query:"state" doc:"only this state" maxLength:"300"`
	SpecialistID string `query:"specialist" doc:"only this specialist" maxLength:"300"`
	By           string `query:"by" enum:"decisions,dates" doc:"along what a series is thinned that has more than 500 points: decisions without it"`
}

type trustHistoryOut struct {
	Body api.List[report.TrustSeries]
}

func (s *Server) trustHistory(ctx context.Context, p *Principal, in *trustHistoryIn) (*trustHistoryOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	q := report.HistoryQuery{State: in.State, SpecialistID: in.SpecialistID, By: in.By}
	page, err := pageEach(fmt.Sprintf("history of trust in %s\n%+v", in.Name, q), p, &in.Page, report.TrustHistoryOf(ctx, tenantOf(ctx).Runner, in.Name, q),
		func(t report.TrustSeries) string { return t.State + "\n" + t.SpecialistID })
	return &trustHistoryOut{page}, err
}

type calibrationIn struct {
	params.Machine
	State string `query:"state" doc:"only this state" maxLength:"300"`
}

type calibrationOut struct{ Body *report.Calibration }

func (s *Server) calibration(ctx context.Context, p *Principal, in *calibrationIn) (*calibrationOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	c, err := report.CalibrationOf(ctx, tenantOf(ctx).Runner, in.Name, machine.StateName(in.State))
	return &calibrationOut{c}, err
}

type spendIn struct {
	params.Machine
	params.Page
	Since string `query:"since" doc:"from this day on, such as 2026-01-31, in UTC" maxLength:"20"`
	Until string `query:"until" doc:"up to this day, which is included" maxLength:"20"`
	By    string `query:"by" doc:"what the sums are apart by: specialist, model and day, with commas between, or total for a single one; specialist without it" maxLength:"100"`
}

type spendOut struct{ Body api.List[report.Spent] }

func (s *Server) spend(ctx context.Context, p *Principal, in *spendIn) (*spendOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	q := report.SpendQuery{Since: in.Since, Until: in.Until, By: in.By}
	if err := q.Check(); err != nil {
		return nil, bad("bad_request", "%v", err)
	}
	list, err := report.SpentOf(ctx, tenantOf(ctx).Runner, in.Name, q)
	if err != nil {
		return nil, err
	}
	page, err := pageOf(fmt.Sprintf("spend of %s\n%+v", in.Name, q), p, &in.Page, list, func(s report.Spent) string { return s.Day + "\n" + s.SpecialistID + "\n" + s.Model })
	return &spendOut{page}, err
}
