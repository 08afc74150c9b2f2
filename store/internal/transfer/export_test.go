package transfer

// AfterStep has f called after each step of Copy; its error ends it there.
func (o Options) AfterStep(f func(step string) error) Options {
	o.after = f
	return o
}

// InBatches has so many rows written in one transaction.
func (o Options) InBatches(n int) Options {
	o.batch = n
	return o
}
