package workload

// The numbers of this file are statistics measured on public traces: quantiles of lengths, growth and pauses by kind
// of request. Some were then moved, by up to a third, until the whole matched; docs/workloads.md compares what is
// generated with the traces themselves.

// conversationPreset returns the fit of an open-loop preset.
func conversationPreset(name string) (*conversationFit, bool) {
	switch name {
	case PresetChat:
		return &chatFit, true
	case PresetToolAgent:
		return &toolAgentFit, true
	case PresetLongContext:
		return &longContextFit, true
	case PresetBursty:
		return &burstyFit, true
	}
	return nil, false
}

// mooncakeTicks is how the Mooncake production traces record arrivals: in ticks of 3 s, a little more uneven than
// a Poisson process over minutes.
var mooncakeTicks = arrivalFit{tickMs: 3000, swell: .165, swellPeriodMs: 1_200_000}

// chatFit is fitted to the Mooncake conversation trace (FAST'25, Apache-2.0): 12,031 requests in 59 minutes. All
// begin with one system prompt of a little less than two blocks. A tenth is hardly more than it; the others are
// conversations, some with long documents, of which two in five are carried on.
var chatFit = conversationFit{
	requests: 12_031, rate: 12_031 / 3537., blockSize: 512, maxInput: 126_200,
	arrivals: mooncakeTicks, warmUpSeconds: 1200,
	systems: []systemPrompt{{share: 1, tokens: 880}},
	openings: []opening{
		{
			share:  1296,
			input:  quantiles{11, 12, 12, 13, 14, 15, 16, 17, 19, 22, 26, 34, 48, 59, 72, 94, 107, 114, 116, 119, 119},
			output: quantiles{1, 3, 3, 8, 17, 29, 43, 122, 205, 286, 354, 415, 474, 521, 571, 643, 713, 873, 965, 1123, 1298},
		},
		{
			share:  3862,
			input:  quantiles{120, 135, 172, 265, 455, 838, 1680, 3162, 4036, 5666, 8009, 11464, 16222, 22506, 30748, 46725, 71180, 100443, 114573, 121972, 125315},
			output: quantiles{1, 3, 3, 8, 21, 38, 107, 232, 311, 361, 403, 447, 502, 536, 588, 691, 825, 1058, 1362, 2000, 2000},
		},
		{
			share:  2100,
			input:  quantiles{144, 174, 205, 276, 402, 636, 1091, 2773, 4001, 5543, 7614, 10632, 15192, 19696, 24592, 32839, 49014, 72063, 97640, 119755, 122011},
			output: quantiles{1, 2, 3, 10, 27, 64, 118, 233, 301, 357, 404, 452, 507, 542, 593, 674, 784, 977, 1204, 2000, 2000},
			follow: 1,
		},
	},
	follow:     []float64{.45, .57, .65, .69},
	gapSeconds: quantiles{3, 12.9, 21, 30, 42, 51, 60, 75, 96, 123, 162, 222, 318, 390, 483, 615, 915, 1479, 1908, 2641, 3030},
	output:     quantiles{1, 3, 6, 14, 30, 60, 107, 216, 289, 350, 402, 453, 513, 553, 618, 739, 900, 1336, 1991, 2000, 2000},
	growth:     quantiles{-400, -269, -67, -18, -2, 6, 8, 11, 16, 26, 53, 178, 704, 2564, 4228, 6937, 10330, 16705, 22254, 37562, 91467},
	keepsReply: true,
	edit:       .151,
	editKeep:   quantiles{.015, .031, .042, .054, .07, .085, .1, .133, .176, .224, .3, .41, .553, .75, .9, .944, .961, .978, .982, .99, .993},
	editNew:    quantiles{10, 315, 683, 894, 1703, 3724, 4969, 7001, 8535, 9556, 10929, 13675, 15905, 17377, 19889, 26327, 30143, 39309, 46306, 74683, 94968},
}

// longContextFit is fitted to the Mooncake synthetic trace (FAST'25, Apache-2.0): 3,993 requests in 17 minutes,
// Poisson arrivals. Half of the openings are short prompts with a long answer; the others are long documents, most
// with one question, some with several that are answered briefly.
var longContextFit = conversationFit{
	requests: 3993, rate: 3993 / 1022.025, blockSize: 512, maxInput: 191_400, warmUpSeconds: 900,
	openings: []opening{
		{
			share:  1260,
			input:  quantiles{13, 13, 14, 17, 19, 22, 24, 29, 34, 46, 68, 107, 215, 325, 449, 678, 808, 935, 969, 988, 991},
			output: quantiles{1, 3, 4, 12, 28, 53, 89, 137, 203, 252, 300, 351, 432, 495, 578, 710, 774, 785, 800, 829, 842},
		},
		{
			share:  636,
			input:  quantiles{1002, 1054, 1092, 1186, 1872, 3544, 9229, 13425, 14533, 15382, 16367, 18035, 22030, 23841, 28090, 36166, 43348, 61986, 84681, 129891, 134773},
			output: quantiles{1, 4, 5, 24, 84, 126, 153, 186, 215, 245, 276, 308, 345, 362, 390, 453, 539, 697, 755, 792, 800},
		},
		{
			share:  385,
			input:  quantiles{1024, 2349, 2702, 3021, 4565, 5816, 6982, 11562, 13682, 16721, 20934, 29121, 36004, 39903, 44586, 53076, 56492, 66503, 76842, 149693, 191374},
			output: quantiles{2, 2, 2, 2, 3, 3, 4, 8, 10, 14, 22, 36, 65, 108, 179, 250, 283, 306, 322, 366, 382},
			follow: 1,
		},
	},
	follow:     []float64{.89, .86, .82},
	gapSeconds: quantiles{0, .4, 1.2, 2.2, 4.7, 8.2, 13, 25, 41, 62, 93, 135, 179, 222, 280, 385, 469, 570, 634, 725, 793},
	output:     quantiles{2, 2, 2, 2, 2, 3, 4, 9, 12, 20, 30, 51, 85, 101, 104, 155, 370, 511, 566, 766, 893},
	growth:     quantiles{-460, -202, -115, -43, -10, -6, -4, -2, 0, 1, 2, 5, 11, 24, 112, 363, 683, 924, 999, 1628, 1814},
	edit:       .237,
	editKeep:   quantiles{.5, .833, .889, .9, .931, .955, .962, .966, .971, .972, .975, .98, .984, .985, .987, .988, .99, .99, .992, .994, .994},
	editNew:    quantiles{90, 131, 201, 236, 332, 421, 477, 522, 546, 630, 786, 958, 1135, 1255, 1430, 1552, 2061, 2320, 3068, 36414, 59649},
}

// toolAgentFit meets the published figures of the Mooncake tool-and-agent trace (FAST'25): 23,608 requests in an
// hour, 8,596 input and 182 output tokens on average, 59 % of the prompt blocks reusable, mostly thanks to long
// fixed system prompts. What is not published is assumed: the shape of the distributions, and arrivals as in the
// conversation trace.
var toolAgentFit = conversationFit{
	requests: 23_608, rate: 23_608 / 3600., blockSize: 512, maxInput: 128_000,
	arrivals: mooncakeTicks, warmUpSeconds: 1200,
	systems: []systemPrompt{
		{.22, 5500}, {.18, 3900}, {.14, 2650}, {.12, 7300}, {.10, 1700}, {.08, 4700},
		{.06, 1100}, {.04, 9300}, {.03, 3200}, {.02, 650}, {.01, 11_400},
	},
	openings: []opening{{
		share:  1,
		input:  quantiles{15, 29, 48, 87, 173, 288, 413, 673, 1010, 1443, 2067, 3077, 5000, 6636, 9232, 14906, 22118, 35580, 49043, 84624, 105780},
		output: quantiles{1, 2, 3, 5, 9, 13, 17, 27, 39, 57, 87, 142, 262, 360, 512, 796, 1090, 1526, 1700, 2000, 2000},
		follow: .12,
	}},
	follow:     []float64{.4, .5},
	gapSeconds: quantiles{1, 2, 3, 4, 5, 6, 7, 9, 12, 16, 22, 32, 50, 66, 95, 165, 270, 470, 680, 1200, 1800},
	output:     quantiles{1, 2, 3, 5, 9, 13, 17, 27, 39, 57, 87, 142, 262, 360, 512, 796, 1090, 1526, 1700, 2000, 2000},
	growth:     quantiles{5, 10, 16, 26, 45, 65, 90, 140, 210, 310, 460, 690, 1080, 1400, 1900, 3000, 4400, 7200, 10_000, 20_000, 40_000},
	keepsReply: true,
}

// burstyFit is fitted to nothing: 20 minutes of load that rises and falls three times, with a burst every two minutes or so.
// Prompts of 10,000 tokens (median; log-normal, sigma 0.6) begin with one of twenty system prompts and are not carried on.
var burstyFit = conversationFit{
	requests: 4800, rate: 4, blockSize: 512, maxInput: 60_000,
	arrivals: arrivalFit{swell: .75, swellPeriodMs: 400_000, startsLow: true, burst: 1.6, burstMs: 20_000, burstGapMs: 100_000},
	systems: []systemPrompt{
		{1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048},
		{1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048}, {1, 2048},
	},
	openings: []opening{{
		share:  1,
		input:  quantiles{52, 428, 1037, 1679, 2587, 3321, 3987, 5253, 6542, 7952, 9594, 11_650, 14_521, 16_576, 19_527, 24_781, 30_365, 38_334, 44_855, 57_952, 57_952},
		output: quantiles{10, 22, 28, 34, 42, 48, 54, 66, 77, 90, 105, 123, 149, 168, 194, 241, 292, 363, 400, 400, 400},
	}},
}

// agenticFit is fitted to the main agents of 34 coding sessions of the kv-cache-tester corpus (Apache-2.0): 1,806
// turns with blocks of 64 tokens. Their starts are not recorded; by default they spread over an hour. A sixth of
// the sessions resumes earlier work with a very long prompt. Pauses are tool runs, and now and then a person.
var agenticFit = sessionFit{
	requests: 1806, rate: .5, blockSize: 64,
	kinds: []sessionKind{
		{
			share: 28,
			first: quantiles{9837, 9951, 10123, 10566, 12474, 13990, 15343, 15700, 16782, 18064, 18655, 19633, 20869, 21278, 22977, 29550, 31768, 32665, 32965, 33204, 33264},
			turns: quantiles{3, 3, 3, 3, 4, 7, 8, 25, 50, 54, 76, 90, 104, 120, 122, 129, 133, 134, 134, 134, 134},
		},
		{
			share: 6,
			first: quantiles{70943, 72738, 75432, 79920, 88898, 97875, 106852, 125116, 143379, 201357, 259000, 300000, 345000, 390000, 480000, 600000, 700000, 800000, 825000, 845000, 851858},
			turns: quantiles{5, 5, 5, 5, 5, 5, 5, 7, 9, 15, 21, 22, 23, 23, 23, 23, 23, 23, 23, 23, 23},
		},
	},
	pauseSeconds: quantiles{0, 2.48, 3.06, 3.55, 4.31, 4.81, 5.29, 6.23, 7.53, 9.36, 11.89, 16, 25, 46.2, 87.4, 170.9, 512, 2023, 3474, 37286, 77590},
	output:       quantiles{1, 71, 81, 96, 110, 124, 137, 166, 205, 260, 324, 416, 552, 667, 905, 1413, 2335, 3808, 4635, 6066, 9183},
	growth:       quantiles{-3366, -345, -122, -52, -11, 9, 23, 59, 165, 295, 502, 861, 1601, 2224, 3610, 6850, 11169, 15370, 24434, 90000, 235000},
	early:        5,
	earlyGrowth:  quantiles{-395, -164, -125, -73, -3, 16, 29, 65, 212, 407, 1216, 3332, 6062, 9613, 18118, 26384, 42807, 88271, 103116, 104786, 105203},
	leastGrowth:  64,
	limit:        quantiles{124947, 128207, 132553, 137986, 141245, 144504, 146678, 152110, 156456, 159716, 162975, 165148, 169494, 171667, 174926, 180359, 186878, 195570, 200000, 260000, 290000},
	clear:        .002,
	compactKeep:  quantiles{.2, .4, .54, .54, .541, .541, .56, .62, .7, .92, .95, .968, .98, 1, 1, 1, 1, 1, 1, 1, 1},
	compactTo:    quantiles{10774, 10830, 10913, 11041, 11112, 13032, 21899, 26842, 38884, 58263, 66692, 77555, 103102, 103612, 106268, 111613, 120939, 126950, 128952, 130555, 130955},
}
