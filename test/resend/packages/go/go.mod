module calls

go 1.21

require github.com/resend/resend-go/v2 v2.28.0
